#!/usr/bin/env python3
"""Checks that modules include what cmake/layers.json lets them and all of it, and that no pages import in circles."""

import json
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PUBLIC = re.compile(r"^\s*#\s*include\s*<normscope/(\w+)/", re.MULTILINE)
PRIVATE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
IMPORT = re.compile(r'\b(?:from|import)\s*\(?\s*"(\.[^"]+)"')


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


if __name__ == "__main__":
    house = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    problems = violations(house) + circles(house)
    print("\n".join(problems) or "floors: includes point down, each module uses all it may, no imports in circles")
    sys.exit(1 if problems else 0)
