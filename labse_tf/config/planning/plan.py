"""A plan: for each stage, whether it fits a device, how long it takes, and what it costs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from labse_tf.config import TrainRun
from labse_tf.config.planning.costs import Memory, memory_of, operations_of
from labse_tf.config.planning.devices import CPU, Device
from labse_tf.config.planning.phases import SECTIONS, TRAIN, Phase, find_phases
from labse_tf.errors import InputError

_SECONDS_PER_DAY = 86_400
_HOURS_PER_DAY = 24
_GB = 1e9


@dataclass(frozen=True)
class Stage:
    """A stage with its cost.

    Attributes:
      phase: what is trained.
      memory: of a replica.
      fits: whether the device has as much.
      operations: of a replica in a step, floating-point.
      steps_per_second: at the assumed efficiency, with sequences of full length; None without
        layers, where the time is that of reading rows, not of operations.
      remedy: how to make it fit; None if it does.
    """

    phase: Phase
    memory: Memory
    fits: bool
    operations: float
    steps_per_second: float | None
    remedy: str | None

    @property
    def days(self) -> float:
        if self.steps_per_second is None:
            return 0.0
        return self.phase.steps / self.steps_per_second / _SECONDS_PER_DAY


@dataclass(frozen=True)
class Plan:
    """A plan for one device.

    Attributes:
      device: of each replica.
      replicas: how many.
      precision: of activations and products.
      efficiency: the share of the device's peak that is assumed.
      stages: in order.
      price: of a device for an hour, in any currency; None if not given.
    """

    device: Device
    replicas: int
    precision: str
    efficiency: float
    stages: list[Stage]
    price: float | None = None

    @property
    def days(self) -> float:
        return sum(stage.days for stage in self.stages)

    @property
    def cost(self) -> float | None:
        if self.price is None:
            return None
        return self.days * _HOURS_PER_DAY * self.replicas * self.price

    def facts(self) -> dict[str, Any]:
        """Returns all of it for JSON, in bytes and days."""
        return {
            "device": self.device.name,
            "device_memory": self.device.memory,
            "replicas": self.replicas,
            "precision": self.precision,
            "peak": self.device.peaks[self.precision],
            "efficiency": self.efficiency,
            "days": self.days,
            "cost": self.cost,
            "stages": [
                {
                    "name": stage.phase.name,
                    "layers": stage.phase.layers,
                    "steps": stage.phase.steps,
                    "memory": {**vars(stage.memory), "total": stage.memory.total},
                    "fits": stage.fits,
                    "operations": stage.operations,
                    "steps_per_second": stage.steps_per_second,
                    "days": stage.days,
                    "remedy": stage.remedy,
                }
                for stage in self.stages
            ],
        }


def make_plan(
    config: TrainRun,
    device: Device,
    *,
    replicas: int = 1,
    efficiency: float | None = None,
    price: float | None = None,
    sections=SECTIONS,
) -> Plan:
    """Returns the plan of a configuration.

    Args:
      config: with `encoder.vocab_size`.
      device: of each replica.
      replicas: that share the global batch; on a CPU, one.
      efficiency: the share of the device's peak that is assumed; None: the device's own.
      price: of a device for an hour.
      sections: which of SECTIONS.

    Raises:
      InputError: as `find_phases`, or if an argument is out of range.
    """
    if replicas < 1:
        raise InputError(f"--replicas is {replicas}", remedy="give 1 or more")
    efficiency = device.efficiency if efficiency is None else efficiency
    if not 0 < efficiency <= 1:
        raise InputError(f"--efficiency is {efficiency}", remedy="give more than 0, at most 1")
    precision = device.precision(config.compute.precision)
    speed = device.peaks[precision] * efficiency
    stages = []
    for phase in find_phases(config, replicas=replicas, on_tpu=device.compiles, sections=sections):
        memory, operations = memory_of(phase, device, precision), operations_of(phase)
        fits = memory.total <= device.memory
        remedy = None if fits else _remedy(phase, device, precision)
        steps_per_second = speed / operations if operations else None
        stages.append(Stage(phase, memory, fits, operations, steps_per_second, remedy))
    return Plan(device, replicas, precision, efficiency, stages, price)


def _remedy(phase: Phase, device: Device, precision: str) -> str:
    """Returns the largest chunk, or the fewest replicas, with which a stage fits, or advice."""

    def fits(changed: Phase) -> bool:
        return memory_of(changed, device, precision).total <= device.memory

    divisors = (n for n in range(phase.local // 2, 0, -1) if phase.local % n == 0)
    for chunk in divisors:
        if fits(dataclasses.replace(phase, chunk=chunk)):
            return f"add --set {phase.section}.chunk_size={chunk}"
    local = phase.local
    while device.name != CPU and local % 2 == 0:
        local //= 2
        if fits(dataclasses.replace(phase, local=local, chunk=min(phase.chunk, local))):
            times = phase.local // local
            more = phase.batch // local
            return f"give it --replicas {more}, or a batch {times} times smaller"
    if phase.candidates == phase.encoder.vocab_size:
        return "add --set pretrain.sampled_softmax=8192, or make the batch or the length smaller"
    return "make the batch or the length smaller"


def format_plan(plan: Plan) -> str:
    """Returns a plan as lines of text."""
    device, peak = plan.device, plan.device.peaks[plan.precision]
    lines = [
        f"{plan.replicas} x {device.name}: {device.memory / _GB:.0f} GB and {peak / 1e12:.3g} "
        f"TFLOP/s each in {plan.precision}, of which {100 * plan.efficiency:.0f} % are assumed"
    ]
    for stage in plan.stages:
        lines += ["", *_lines(stage, device)]
    if plan.days:
        total = f"in all: {_duration(plan.days)}"
        if plan.cost is not None:
            total += f", {plan.cost:,.0f} at {plan.price:g} per device and hour"
        lines += ["", total]
    return "\n".join(lines)


def _lines(stage: Stage, device: Device) -> list[str]:
    phase, memory = stage.phase, stage.memory
    what = "pairs" if phase.section == TRAIN else "sequences"
    parts = ", ".join(f"{name} {part / _GB:.2f}" for name, part in vars(memory).items() if part)
    verdict = "fits" if stage.fits else f"does not fit; {stage.remedy}"
    return [
        f"{phase.name}: {phase.layers} layers, {phase.steps:,} steps of {phase.batch:,} {what} "
        f"({phase.local:,} a replica) of at most {phase.length} tokens",
        f"  memory, GB: {parts}",
        f"  in all {memory.total / _GB:.2f} of {device.memory / _GB:.0f} GB: {verdict}",
        f"  {_time(stage)}",
    ]


def _time(stage: Stage) -> str:
    if stage.steps_per_second is None:
        return "the time is that of reading rows, which is not planned: try a few steps"
    return (
        f"{stage.operations / 1e12:.3g} TFLOP a step and replica, "
        f"{stage.steps_per_second:.3g} steps/s, {_duration(stage.days)}"
    )


def _duration(days: float) -> str:
    if days >= 1:
        return f"{days:.1f} days"
    hours = days * _HOURS_PER_DAY
    return f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.0f} minutes"
