"""python -m normscope convert FILE -o X.safetensors"""

import argparse
import sys

from .foreign import convert


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m normscope",
                                     description="The command `normscope` has everything else.")
    command = parser.add_subparsers(dest="command", metavar="convert", required=True).add_parser(
        "convert", help="write a file of Keras, Flax or TensorFlow as safetensors",
        description="Writes the tensors of a file of Keras, Flax, TensorFlow or TensorFlow Lite as safetensors.")
    command.add_argument("file", metavar="FILE", help="model.keras, model.h5, X.msgpack, NAME.index or X.tflite")
    command.add_argument("-o", "--output", metavar="X.safetensors", required=True, help="the file to write")
    given = parser.parse_args()
    try:
        convert(given.file, given.output)
    except (OSError, ValueError) as error:
        print(f"normscope: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
