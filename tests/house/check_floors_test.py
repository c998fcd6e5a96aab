"""scripts/check_floors.py finds violations of the floors."""

import importlib.util
import json
import os
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(os.environ["NORMSCOPE_SOURCE_DIR"]) / "scripts/check_floors.py"
spec = importlib.util.spec_from_file_location("check_floors", SCRIPT)
check_floors = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_floors)


class Floors(unittest.TestCase):
    def violations(self, path, text, layers='{"core": [], "norm": [], "geometry": []}'):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, content in (("cmake/layers.json", layers), (path, text)):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(content)
            return check_floors.violations(root)

    def test_downward_and_own_includes_pass(self):
        self.assertEqual(self.violations("src/norm/a.cpp", "#include <normscope/core/a.hpp>\n#include <vector>\n",
                                         '{"core": [], "norm": ["core"]}'), [])

    def test_siblings_and_upward_includes_are_found(self):
        self.assertIn("geometry may not include norm",
                      self.violations("src/geometry/a.cpp", "#include <normscope/norm/a.hpp>\n")[0])
        self.assertIn("core may not include norm",
                      self.violations("include/normscope/core/a.hpp", " # include <normscope/norm/a.hpp>\n")[0])

    def test_relative_includes_and_unlisted_modules_are_found(self):
        self.assertTrue(self.violations("src/norm/a.cpp", '#include "../geometry/b.hpp"\n'))
        self.assertTrue(self.violations("src/attic/a.cpp", "\n"))

    def test_floors_that_no_include_uses_are_found(self):
        self.assertEqual(self.violations("src/norm/a.cpp", "#include <normscope/core/a.hpp>\n",
                                         '{"core": [], "geometry": ["core"], "norm": ["core", "geometry"]}'),
                         ["cmake/layers.json: geometry never includes core",
                          "cmake/layers.json: norm never includes geometry"])

    def test_circles_are_found(self):
        with self.assertRaises(ValueError):
            self.violations("src/core/a.cpp", "\n", '{"core": ["norm"], "norm": ["core"]}')


class StandardHeaders(unittest.TestCase):
    def missing(self, text):
        with tempfile.TemporaryDirectory() as folder:
            header = Path(folder) / "include/normscope/core/a.hpp"
            header.parent.mkdir(parents=True)
            header.write_text(text)
            return check_floors.missing_headers(Path(folder))

    def test_a_header_that_others_include_is_missing_all_the_same(self):
        self.assertEqual(self.missing("#include <vector>\nstd::vector<std::size_t> sizes;  // std::string\n"),
                         ["include/normscope/core/a.hpp: uses std::size_t and does not include <cstddef>"])

    def test_a_name_of_no_known_header_is_told(self):
        self.assertIn("std::latch is not in the table", self.missing("std::latch done;\n")[0])


class SystemHeaders(unittest.TestCase):
    def found(self, *path):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, *path)
            file.parent.mkdir(parents=True)
            file.write_text("#include <sys/stat.h>\n#include <cerrno>\n")
            return check_floors.system_headers(Path(folder))

    def test_only_core_includes_them(self):
        self.assertEqual(self.found("src/core/a.cpp"), [])
        self.assertEqual(self.found("src/norm/a.cpp"),
                         ["src/norm/a.cpp: <sys/stat.h> is of the operating system, which only core includes"])
        self.assertEqual(len(self.found("include/normscope/core/a.hpp")), 1)


class TorchHeaders(unittest.TestCase):
    def test_only_their_folder_of_the_lab_includes_them(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("grouped/network.cpp", "torch/network.cpp"):
                file = Path(folder, "lab", name)
                file.parent.mkdir(parents=True)
                file.write_text("#include <torch/types.h>\n")
            self.assertEqual(check_floors.torch_headers(Path(folder)),
                             ["lab/grouped/network.cpp: <torch/types.h> is of torch, which only lab/torch includes"])


class Picture(unittest.TestCase):
    FLOORS = {"core": [], "norm": ["core"], "audit": ["core", "norm"]}

    def test_modules_stand_above_what_they_include(self):
        self.assertEqual(check_floors.picture(self.FLOORS), """flowchart BT
  subgraph floor0 [floor 0]
    core
  end
  subgraph floor1 [floor 1]
    norm
  end
  subgraph floor2 [floor 2]
    audit
  end
  core --> norm
  norm --> audit""")

    def test_a_page_with_other_floors_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name in ("cmake", "docs/design"):
                (root / name).mkdir(parents=True)
            (root / "cmake/layers.json").write_text(json.dumps(self.FLOORS))
            page = root / "docs/design/house.md"
            for text, stale in (("no picture", 1), (f"```mermaid\n{check_floors.picture(self.FLOORS)}\n```\n", 0),
                                (f"```mermaid\n{check_floors.picture({'core': []})}\n```\n", 1)):
                page.write_text(text)
                self.assertEqual(len(check_floors.stale_picture(root)), stale, text)


class Imports(unittest.TestCase):
    def circles(self, **files):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, content in files.items():
                path = root / "explorer/app" / f"{name}.ts"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
            return check_floors.circles(root)

    def test_imports_of_what_imports_nothing_pass(self):
        self.assertEqual(self.circles(a='import { b } from "./b";\nimport type { C } from "./c";\n',
                                      b='import {\n  C,\n} from "./c";\n', c='import { d } from "d";\n'), [])

    def test_circles_through_types_and_lazy_chapters_are_found(self):
        self.assertEqual(self.circles(a='import { b } from "./b";\n', b='import type { A } from "./a";\n'),
                         ["explorer: app/a.ts imports app/b.ts imports app/a.ts"])
        self.assertTrue(self.circles(a='const b = () => import("./b");\n', b='export { a } from "./c";\n',
                                     c='import "./a";\n'))


if __name__ == "__main__":
    unittest.main()
