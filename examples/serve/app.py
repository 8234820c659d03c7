"""Sentence vectors over HTTP: ONNX Runtime, with the requests of many clients in one batch.

    pip install labse-tf fastapi uvicorn
    LABSE_MODEL=model/onnx/model.onnx uvicorn --app-dir examples/serve app:app --port 8501
    curl -d '{"instances": ["Hello", "Hallo"]}' localhost:8501/v1/models/labse:predict

Requests and answers are those of TensorFlow Serving's REST interface, so its clients work
(examples/serving_client.py). While the encoder works, requests wait; then all that have come, up to
LABSE_BATCH texts, are one batch: nobody waits for others to come. An int8 encoder rounds the texts
of a batch together, so that a vector depends a little on its neighbours; float32 does not.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from typing import Annotated

import numpy as np
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel, Field

import labse_tf

TEXTS_PER_BATCH = int(os.environ.get("LABSE_BATCH", "256"))
TEXTS_PER_REQUEST, CHARACTERS_PER_TEXT = 256, 20_000
MOST_WAITING = 10_000  # Texts; further requests are told to come back.
NAME = "labse"


def encodable(text: str) -> str:
    """Refuses halves of surrogate pairs, which JSON can write and UTF-8 cannot."""
    text.encode("utf-8")
    return text


Text = Annotated[str, Field(max_length=CHARACTERS_PER_TEXT), AfterValidator(encodable)]


class Texts(BaseModel):
    """A request."""

    instances: Annotated[list[Text], Field(min_length=1, max_length=TEXTS_PER_REQUEST)]


class Vectors(BaseModel):
    """An answer: a unit vector a text."""

    predictions: list[list[float]]


class Batcher:
    """Embeds what waits, one batch at a time.

    Attributes:
      batches: how many there were.
    """

    def __init__(self, model) -> None:
        self._model = model
        self._waiting: asyncio.Queue[tuple[list[str], asyncio.Future]] = asyncio.Queue()
        self._texts = 0
        self.batches = 0

    async def embed(self, texts: list[str]) -> np.ndarray:
        """Returns float32 `[texts, dim]`.

        Raises:
          HTTPException: if too many wait already.
        """
        if self._texts + len(texts) > MOST_WAITING:
            raise HTTPException(503, "too many requests wait", headers={"Retry-After": "1"})
        answer = asyncio.get_running_loop().create_future()
        self._texts += len(texts)
        self._waiting.put_nowait((texts, answer))
        return await answer

    async def run(self) -> None:
        """Works until it is cancelled."""
        while True:
            batch = [await self._waiting.get()]
            count = len(batch[0][0])
            while not self._waiting.empty() and count < TEXTS_PER_BATCH:
                batch.append(self._waiting.get_nowait())
                count += len(batch[-1][0])
            self._texts -= count
            self.batches += 1
            try:
                texts = [text for some, _ in batch for text in some]
                vectors = await asyncio.to_thread(self._model.encode, texts)
            except Exception as error:  # One request's fault must not end the service.
                for _, answer in batch:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            start = 0
            for some, answer in batch:
                # The client may be gone.
                if not answer.done():
                    answer.set_result(vectors[start : start + len(some)])
                start += len(some)


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    model = await asyncio.to_thread(labse_tf.load, os.environ["LABSE_MODEL"])
    app.state.batcher = Batcher(model)
    work = asyncio.create_task(app.state.batcher.run())
    yield
    work.cancel()


app = FastAPI(lifespan=lifespan, title="Sentence vectors")


@app.exception_handler(RequestValidationError)
async def refuse(request: Request, error: RequestValidationError) -> JSONResponse:
    """Answers as TensorFlow Serving does: 400, with the reason."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:])
    return JSONResponse({"error": f"{where}: {first['msg']}"}, status_code=400)


@app.post(f"/v1/models/{NAME}:predict")
async def predict(texts: Texts) -> Vectors:
    vectors = await app.state.batcher.embed(texts.instances)
    return Vectors(predictions=vectors.tolist())


@app.get(f"/v1/models/{NAME}")
async def status() -> dict:
    """Returns what TensorFlow Serving tells of a model that is ready, and the batches so far."""
    state = {"version": "1", "state": "AVAILABLE"}
    return {"model_version_status": [state], "batches": app.state.batcher.batches}
