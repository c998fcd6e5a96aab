#!/usr/bin/env python3
"""Checks that modules include only what cmake/layers.json allows, and all of it, that public headers include the
standard headers whose names they use, that only core includes those of the operating system, that in the lab only
lab/torch includes torch, that no pages import in circles, and that docs/design/house.md shows the current floors; with
--picture, writes them there; with --figures, prints how large the house is."""

import json
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PUBLIC = re.compile(r"^\s*#\s*include\s*<normscope/(\w+)/", re.MULTILINE)
PRIVATE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
IMPORT = re.compile(r'\b(?:from|import)\s*\(?\s*"(\.[^"]+)"')

STANDARD = re.compile(r"\bstd::(\w+)")
INCLUDED = re.compile(r"^#include <(\w+)>", re.MULTILINE)
SYSTEM = re.compile(r"^#include <((?:arpa|net|netinet|sys)/\w+\.h|"
                    r"(?:dirent|dlfcn|fcntl|netdb|poll|pthread|sched|signal|spawn|termios|unistd)\.h)>", re.MULTILINE)
TORCH = re.compile(r"^#include <((?:ATen|c10|torch)/[^>]+)>", re.MULTILINE)
COMMENT = re.compile(r"//.*")
# Names of namespace std that public headers use, by the header that defines them.
DEFINES = {
    "algorithm": "max", "array": "array to_array", "chrono": "chrono",
    "cmath": "abs ceil copysign exp fabs floor fma ilogb isfinite isinf isnan ldexp log log10 nearbyint pow round scalbn sqrt",
    "cstddef": "byte ptrdiff_t size_t", "cstdint": "int32_t int64_t uint16_t uint32_t uint64_t uint8_t",
    "cstdio": "fprintf remove snprintf", "cstdlib": "abort atoi atoll strtod", "cstring": "memcpy",
    "filesystem": "filesystem", "functional": "function less", "initializer_list": "initializer_list",
    "limits": "numeric_limits", "map": "map", "memory": "addressof make_shared make_unique shared_ptr unique_ptr", "optional": "nullopt optional",
    "set": "multiset set",
    "span": "span", "stdexcept": "runtime_error", "string": "string to_string", "string_view": "string_view",
    "system_error": "error_code",
    "type_traits": "conditional_t enable_if_t is_same_v is_trivially_copyable_v remove_cv_t remove_reference_t "
                   "type_identity_t",
    "utility": "move pair", "variant": "variant", "vector": "vector",
}
HEADER_OF = {name: header for header, names in DEFINES.items() for name in names.split()}


def missing_headers(root: Path) -> list[str]:
    """Names of namespace std in public headers that do not include the header of the name themselves."""
    found = []
    for path in sorted((root / "include/normscope").rglob("*.hpp")):
        text = COMMENT.sub("", path.read_text())
        included = set(INCLUDED.findall(text))
        for name in sorted(set(STANDARD.findall(text))):
            header = HEADER_OF.get(name)
            if header is None:
                found.append(f"{path.relative_to(root)}: std::{name} is not in the table of scripts/check_floors.py")
            elif header not in included:
                found.append(f"{path.relative_to(root)}: uses std::{name} and does not include <{header}>")
    return found


def violations(root: Path) -> list[str]:
    floors = json.loads((root / "cmake/layers.json").read_text())
    tuple(TopologicalSorter(floors).static_order())  # raises CycleError
    found = []
    used = set()
    for tree in (root / "include/normscope", root / "src"):
        for path in sorted(tree.rglob("*.[ch]pp")):
            module = path.relative_to(tree).parts[0]
            name = path.relative_to(root)
            if module not in floors:
                found.append(f"{name}: the folder {module} has no floor in cmake/layers.json")
                continue
            text = path.read_text()
            for other in PUBLIC.findall(text):
                used.add((module, other))
                if other not in (module, *floors[module]):
                    found.append(f"{name}: {module} may not include {other}")
            for header in PRIVATE.findall(text):
                if not any((parent / header).is_file() for parent in (path.parent, tree / module)) or ".." in header:
                    found.append(f'{name}: "{header}" is not a private header of {module}')
                elif tree.name == "normscope":
                    found.append(f'{name}: a public header may not include "{header}"')
    for module, below in floors.items():
        found += [f"cmake/layers.json: {module} never includes {other}"
                  for other in below if (module, other) not in used]
    return found


def system_headers(root: Path) -> list[str]:
    """Files of the library outside `core` that include headers of the operating system."""
    return [f"{path.relative_to(root)}: <{header}> is of the operating system, which only core includes"
            for tree in (root / "include/normscope", root / "src") for path in sorted(tree.rglob("*.[ch]pp"))
            for header in SYSTEM.findall(path.read_text())
            if tree.name == "normscope" or path.relative_to(tree).parts[0] != "core"]


def torch_headers(root: Path) -> list[str]:
    """Files of the lab outside `torch` that include its headers; most runs do without libtorch."""
    return [f"{path.relative_to(root)}: <{header}> is of torch, which only lab/torch includes"
            for path in sorted((root / "lab").rglob("*.[ch]pp")) if path.relative_to(root).parts[1] != "torch"
            for header in TORCH.findall(path.read_text())]


def circles(root: Path) -> list[str]:
    """Files of the explorer and the report page that import each other, types included."""
    explorer = root / "explorer"
    folders = [folder for folder in explorer.glob("*/") if folder.name != "node_modules"]
    files = {path.resolve() for folder in folders for path in folder.rglob("*.ts")}
    imports = {}
    for path in sorted(files):
        named = [(path.parent / name).resolve() for name in IMPORT.findall(path.read_text())]
        imports[path] = [target for name in named if (target := name.with_name(f"{name.name}.ts")) in files]
    try:
        tuple(TopologicalSorter(imports).static_order())
    except CycleError as error:
        # The sorter gives each file before the one that imports it.
        circle = reversed([str(path.relative_to(explorer.resolve())) for path in error.args[1]])
        return [f"explorer: {' imports '.join(circle)}"]
    return []


def picture(floors: dict[str, list[str]]) -> str:
    """The floors as a Mermaid diagram. A module stands one floor above the highest that it includes; an arrow is left
    out where others lead to the same module."""
    height, below = {}, {}
    for module in TopologicalSorter(floors).static_order():
        height[module] = 1 + max((height[other] for other in floors[module]), default=-1)
        below[module] = set(floors[module]).union(*(below[other] for other in floors[module]))
    lines = ["flowchart BT"]
    for floor in range(max(height.values()) + 1):
        lines.append(f"  subgraph floor{floor} [floor {floor}]")
        lines += [f"    {module}" for module in floors if height[module] == floor]
        lines.append("  end")
    lines += [f"  {other} --> {module}" for module in floors for other in floors[module]
              if not any(other in below[another] for another in floors[module])]
    return "\n".join(lines)


def page_with_picture(root: Path) -> tuple[Path, str, str]:
    """The page that shows the floors, its text, and the expected text."""
    page = root / "docs/design/house.md"
    text = page.read_text()
    drawn = f"```mermaid\n{picture(json.loads((root / 'cmake/layers.json').read_text()))}\n```"
    return page, text, re.sub(r"```mermaid\n.*?\n```", lambda _: drawn, text, count=1, flags=re.DOTALL)


def stale_picture(root: Path) -> list[str]:
    page, text, wanted = page_with_picture(root)
    if "```mermaid" in text and text == wanted:
        return []
    return [f"{page.relative_to(root)}: shows other floors than cmake/layers.json; run scripts/check_floors.py --picture"]


def figures(root: Path) -> str:
    """How large the house is: what has to be read to know it."""
    def lines(paths):
        # A weight's bytes are no lines.
        texts = {path: path.read_bytes() for path in paths if path.is_file()}
        return {path: 0 if b"\0" in text[:8000] else text.count(b"\n") for path, text in texts.items()}

    tracked = lines(root / name for name in subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z"], check=True, capture_output=True, text=True).stdout.split("\0") if name)
    core = {path: count for path, count in tracked.items()
            if path.suffix in (".cpp", ".hpp") and path.relative_to(root).parts[0] in ("include", "src")}
    users = {}
    for path in core:
        for header in PRIVATE.findall(path.read_text()):
            users.setdefault((path.relative_to(root).parts[:2], Path(header).name), set()).add(path)
    single = [path for path in core if path.suffix == ".hpp" and path.relative_to(root).parts[0] == "src"
              and len(users.get((path.relative_to(root).parts[:2], path.name), ())) == 1]
    fixtures = sum(count for path, count in tracked.items() if "fixtures" in path.parts)
    rows = {
        "modules": len(json.loads((root / "cmake/layers.json").read_text())),
        "core files": len(core),
        "  of fewer than 60 lines": sum(count < 60 for count in core.values()),
        "  of more than 500 lines": sum(count > 500 for count in core.values()),
        "  private headers with one user": len(single),
        "core lines": sum(core.values()),
        "  a file": round(sum(core.values()) / len(core)),
        "tracked files": len(tracked),
        "tracked lines": sum(tracked.values()),
        "  fixtures apart": sum(tracked.values()) - fixtures,
    }
    return "\n".join(f"{name:<34}{count:>8}" for name, count in rows.items())


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument not in ("--picture", "--figures")]
    house = Path(arguments[0] if arguments else ".")
    if "--figures" in sys.argv:
        print(figures(house.resolve()))
        sys.exit()
    if "--picture" in sys.argv:
        path, _, content = page_with_picture(house)
        path.write_text(content)
    problems = [problem for rule in (violations, missing_headers, system_headers, torch_headers, circles, stale_picture)
                for problem in rule(house)]
    print("\n".join(problems) or "floors: includes point down and are complete, each module uses all it may, no imports "
                                 "in circles")
    sys.exit(1 if problems else 0)
