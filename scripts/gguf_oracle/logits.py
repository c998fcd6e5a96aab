#!/usr/bin/env python3
"""Writes what llama.cpp computes of the GGUF files of the tests. Run by hand, never in CI.

    tests/models/gguf/logits.json    the logits of all words behind the tokens of a context, by case

usage: scripts/gguf_oracle/logits.py PACKAGE LIBRARIES [CASE...]

PACKAGE is the unpacked source package of PyPI's llama-cpp-python (0.3.36 was used), LIBRARIES the folder with the
libllama.so that was built of its vendor/llama.cpp:

    cmake -S PACKAGE/vendor/llama.cpp -B BUILD -DBUILD_SHARED_LIBS=ON -DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TESTS=OFF \\
        -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF -DGGML_OPENMP=OFF
    cmake --build BUILD --target llama     (76 objects; LIBRARIES is BUILD/bin)

The cases are those whose forward pass `normscope trace` runs; tests/cli/gguf_test.py compares both.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import types
from pathlib import Path

MODELS = Path(__file__).resolve().parent.parent.parent / "tests" / "models" / "gguf"
TOKENS = (3, 5, 7, 11, 13, 2, 17, 19)
CASES = ("cohere", "falcon_40b", "falcon_7b", "gemma", "gemma2", "gemma3", "glm4", "gpt2", "gpt_neox", "granite",
         "granitemoe", "llama", "mixtral", "phi3", "phi_ungrouped", "qwen2", "qwen2_moe_sparse", "qwen3",
         "qwen3_moe_sparse", "qwen3_yarn", "seed_oss", "smollm3", "stablelm", "starcoder2")
F32 = 0  # ggml's number of the type


def binding(package: Path, libraries: Path):
    """The functions of libllama.so, without the rest of the package, which has more dependencies."""
    os.environ["LLAMA_CPP_LIB_PATH"] = str(libraries)
    outer = types.ModuleType("llama_cpp")
    outer.__path__ = [str(package / "llama_cpp")]
    sys.modules["llama_cpp"] = outer
    return importlib.import_module("llama_cpp.llama_cpp")


def logits(llama, path: Path) -> list[float]:
    """The logits behind the last of TOKENS, with keys and values in float32."""
    model = llama.llama_model_load_from_file(str(path).encode(), llama.llama_model_default_params())
    if not model:
        sys.exit(f"{path}: llama.cpp does not load it")
    options = llama.llama_context_default_params()
    options.n_ctx = options.n_batch = options.n_ubatch = 64
    options.n_threads = options.n_threads_batch = 1
    options.type_k = options.type_v = F32
    options.flash_attn_type = 0  # disabled
    context = llama.llama_init_from_model(model, options)
    batch = llama.llama_batch_init(len(TOKENS), 0, 1)
    batch.n_tokens = len(TOKENS)
    for i, token in enumerate(TOKENS):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = token, i, 1, 0
        batch.logits[i] = i + 1 == len(TOKENS)
    if llama.llama_decode(context, batch) != 0:
        sys.exit(f"{path}: llama.cpp does not run it")
    words = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
    found = llama.llama_get_logits_ith(context, len(TOKENS) - 1)
    result = [float(f"{found[word]:.8g}") for word in range(words)]
    llama.llama_batch_free(batch)
    llama.llama_free(context)
    llama.llama_model_free(model)
    return result


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    llama = binding(Path(sys.argv[1]), Path(sys.argv[2]))
    silent = llama.llama_log_callback(lambda level, text, data: None)
    llama.llama_log_set(silent, None)
    llama.llama_backend_init()
    to = MODELS / "logits.json"
    known = json.loads(to.read_text())["cases"] if to.exists() else {}
    known |= {case: logits(llama, MODELS / f"{case}.gguf") for case in sys.argv[3:] or CASES}
    lines = ",\n".join(f'  "{case}": {json.dumps(known[case])}' for case in sorted(known))
    to.write_text(f'{{"tokens": {json.dumps(TOKENS)}, "cases": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main()
