"""`tf.train.Example` without TensorFlow, whose import would cost every worker eight seconds.

The message classes are built from a description of the part that the corpora use: features that
hold byte strings. Field numbers and types are TensorFlow's, so the bytes are the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory, text_format

# A separate package name, and below a separate descriptor pool, so that there is no clash with
# TensorFlow's definitions if both are loaded. Names are not part of the wire format.
_DESCRIPTION = """
name: "labse_example.proto" package: "labse_example" syntax: "proto3"
message_type { name: "BytesList"
  field { name: "value" number: 1 type: TYPE_BYTES label: LABEL_REPEATED } }
message_type { name: "Feature"
  field { name: "bytes_list" number: 1 type_name: "BytesList" label: LABEL_OPTIONAL } }
message_type { name: "Features"
  nested_type { name: "FeatureEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type_name: "Feature" label: LABEL_OPTIONAL } }
  field { name: "feature" number: 1 type_name: "FeatureEntry" label: LABEL_REPEATED } }
message_type { name: "Example"
  field { name: "features" number: 1 type_name: "Features" label: LABEL_OPTIONAL } }
"""


def _build_class() -> type[message.Message]:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(text_format.Parse(_DESCRIPTION, descriptor_pb2.FileDescriptorProto()))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("labse_example.Example"))


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
