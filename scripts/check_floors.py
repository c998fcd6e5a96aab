#!/usr/bin/env python3
"""Checks every include of the modules against the floors in cmake/layers.json."""

import json
import re
import sys
from graphlib import TopologicalSorter
from pathlib import Path

PUBLIC = re.compile(r"^\s*#\s*include\s*<normscope/(\w+)/", re.MULTILINE)
PRIVATE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def violations(root: Path) -> list[str]:
    floors = json.loads((root / "cmake/layers.json").read_text())
    tuple(TopologicalSorter(floors).static_order())  # raises CycleError
    found = []
    for tree in (root / "include/normscope", root / "src"):
        for path in sorted(tree.rglob("*.[ch]pp")):
            module = path.relative_to(tree).parts[0]
            name = path.relative_to(root)
            if module not in floors:
                found.append(f"{name}: the folder {module} has no floor in cmake/layers.json")
                continue
            text = path.read_text()
            for other in PUBLIC.findall(text):
                if other not in (module, *floors[module]):
                    found.append(f"{name}: {module} may not include {other}")
            for header in PRIVATE.findall(text):
                if not any((parent / header).is_file() for parent in (path.parent, tree / module)) or ".." in header:
                    found.append(f'{name}: "{header}" is not a private header of {module}')
                elif tree.name == "normscope":
                    found.append(f'{name}: a public header may not include "{header}"')
    return found


if __name__ == "__main__":
    problems = violations(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(problems) or "floors: every include points down")
    sys.exit(1 if problems else 0)
