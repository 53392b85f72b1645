#!/usr/bin/env python3
"""Writes a GGUF file whose tensors are all float32: the same model for the float32 comparison.

    pip install gguf
    python bench/gguf_to_f32.py SmolLM2-135M-Instruct.Q4_1.gguf smollm2-f32.gguf
"""

import sys

import gguf

F32_FILE_TYPE = gguf.LlamaFileType.ALL_F32


def copy_metadata(reader, writer):
    """Every key-value pair but those that the writer makes itself."""
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == gguf.Keys.General.ARCHITECTURE:
            continue
        if field.name == gguf.Keys.General.FILE_TYPE:
            writer.add_file_type(int(F32_FILE_TYPE))
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=inner)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = sys.argv[1:]
    reader = gguf.GGUFReader(source)
    architecture = reader.get_field(gguf.Keys.General.ARCHITECTURE).contents()
    writer = gguf.GGUFWriter(target, architecture)
    copy_metadata(reader, writer)
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.add_tensor(tensor.name, values.astype("float32"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
