"""`tf.train.Example` without TensorFlow, whose import would cost every worker eight seconds.

The message classes are built from a description of the part that the corpora use: features that
hold byte strings. Field numbers and types are TensorFlow's, so the bytes are the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

# A separate package name, and below a separate descriptor pool, so that there is no clash with
# TensorFlow's definitions if both are loaded. Names are not part of the wire format.
_PACKAGE = "labse_example"


def _describe_file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="labse_example.proto", package=_PACKAGE, syntax="proto3"
    )
    field = descriptor_pb2.FieldDescriptorProto

    bytes_list = file.message_type.add(name="BytesList")
    bytes_list.field.add(name="value", number=1, type=field.TYPE_BYTES, label=field.LABEL_REPEATED)

    feature = file.message_type.add(name="Feature")
    _add_message(feature, "bytes_list", "BytesList")

    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    _add_message(entry, "value", "Feature", number=2)
    _add_message(features, "feature", "Features.FeatureEntry", label=field.LABEL_REPEATED)

    example = file.message_type.add(name="Example")
    _add_message(example, "features", "Features")
    return file


def _add_message(
    owner: descriptor_pb2.DescriptorProto,
    name: str,
    type_name: str,
    *,
    number: int = 1,
    label: int = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
) -> None:
    owner.field.add(
        name=name,
        number=number,
        label=label,
        type=descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE,
        type_name=f".{_PACKAGE}.{type_name}",
    )


def _build_class() -> type[message.Message]:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_describe_file())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.Example"))


_Example = _build_class()


def encode_example(features: Mapping[str, str]) -> bytes:
    """Returns a serialized Example of UTF-8 byte features; equal features give equal bytes."""
    example = _Example()
    for name, text in features.items():
        example.features.feature[name].bytes_list.value.append(text.encode("utf-8"))
    # Without `deterministic` the order of the features may differ between processes.
    return example.SerializeToString(deterministic=True)


def decode_example(data: bytes) -> dict[str, str]:
    """Returns the features of a serialized Example that hold one UTF-8 byte string each.

    Raises:
      ValueError: if `data` is not a serialized Example or a byte string is not UTF-8.
    """
    try:
        example = _Example.FromString(data)
    except message.DecodeError as error:
        raise ValueError("not a tf.train.Example") from error
    features = {}
    for name, feature in example.features.feature.items():
        if len(feature.bytes_list.value) == 1:
            features[name] = feature.bytes_list.value[0].decode("utf-8")
    return features
