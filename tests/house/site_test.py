"""The site of the documentation: scripts/docs builds it from the tested build, and nothing on it leads nowhere."""

import json
import os
import re
import subprocess
import unittest
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

ROOT = Path(os.environ["NORMSCOPE_SOURCE_DIR"])
SITE = ROOT / "build-docs/site"
#: Written by the explorer's build and by the command, and tested there.
OTHERS = ("explore", "gallery")


class Page(HTMLParser):
    """What a page refers to, what it loads, and the names of its places."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.names = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        of = dict(attributes)
        self.names |= {of.get("id"), of.get("name")}
        if tag == "a" and of.get("href"):
            self.links.append(of["href"])
        source = of.get("href") if tag == "link" and of.get("rel") in ("stylesheet", "icon") else of.get("src")
        if source:
            self.loads.append(source)


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = subprocess.run([ROOT / "scripts/docs", os.environ["NORMSCOPE_BUILD"]], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.pages = {path: Page(path) for path in SITE.rglob("*.html")
                     if path.relative_to(SITE).parts[0] not in OTHERS and path.name != "404.html"}

    def test_links_lead_to_pages_and_places(self):
        self.assertGreater(len(self.pages), 150)
        for path, page in self.pages.items():
            for link in {*page.links, *page.loads}:
                if link.startswith(("http://", "https://", "mailto:", "data:")):
                    continue
                where, place = urldefrag(unquote(link))
                target = (path.parent / where).resolve() if where else path
                with self.subTest(f"{path.relative_to(SITE)}: {link}"):
                    self.assertTrue(target.is_file())
                    if place and target in self.pages:
                        self.assertIn(place, self.pages[target].names)

    def test_nothing_is_loaded_from_elsewhere(self):
        for path, page in self.pages.items():
            self.assertEqual([source for source in page.loads if source.startswith(("http", "//"))], [], path)

    def test_every_kind_of_page_is_found_by_search(self):
        index = json.loads((SITE / "search/search_index.json").read_text())["docs"]
        found = {urldefrag(entry["location"])[0] for entry in index}
        for page in ("index.html", "tour.html", "guides/fold.html", "reference/commands/report.html", "results/index.html",
                     "reference/python/normscope.html", "reference/cpp/norm/kernels.html", "papers/errata.html"):
            self.assertIn(page, found)

    def test_every_page_of_the_documentation_is_in_the_navigation(self):
        entries = re.findall(r"([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
        pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
        self.assertEqual(pages - set(entries), set())

    def test_every_public_header_has_a_page_with_its_declarations(self):
        declared = re.compile(r"^(?:struct|class|enum class) (\w+)|^\[\[nodiscard\]\] [^(\n]*?(\w+)\(|^void (\w+)\(", re.MULTILINE)
        found = 0
        for header in (ROOT / "include/normscope").rglob("*.hpp"):
            page = SITE / "reference/cpp" / header.relative_to(ROOT / "include/normscope").with_suffix(".html")
            text = re.sub(r"^namespace detail \{.*?^\}  // namespace detail$", "", header.read_text(), flags=re.MULTILINE | re.DOTALL)
            for names in declared.findall(text):
                found += 1
                with self.subTest(f"{header.name}: {names}"):
                    self.assertIn("".join(names).lower(), {str(name).lower() for name in self.pages[page].names})
        self.assertGreater(found, 500)


if __name__ == "__main__":
    unittest.main()
