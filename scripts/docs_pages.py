"""Pages of the site that do not lie in docs/: the README and its like, references made from the command, the Python
package and the C++ headers, and the sources that pages link to. MkDocs calls the functions on_*; mkdocs.yml lists this
file, and scripts/docs says by $NORMSCOPE which command is asked."""

import ast
import itertools
import json
import os
import posixpath
import re
import subprocess
import textwrap
from pathlib import Path

import griffe
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
#: Documents of the repository outside docs/, and where the site has them.
DOCUMENTS = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md",
             "SECURITY.md": "security.md", "python/README.md": "python.md", "lab/README.md": "lab.md",
             "models/kjv_gpt/README.md": "kjv_gpt.md",
             "scripts/model_oracle/README.md": "model_oracle.md"}
#: Modules of the Python package with a page each.
PYTHON = ("normscope", "normscope.signature", "normscope.torch", "normscope.lens", "normscope.training",
          "normscope.neuronpedia", "normscope.checker")
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
LIST = re.compile(r"^((?![-*] |\||\s|\d+\. ).+)\n(?=[-*] |1\. )", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def escaped(text):
    """Plain text in which backticks mark code."""
    parts = text.split("`")
    return "`".join(part if i % 2 and len(parts) % 2 else re.sub(r"([\\*_\[\]])", r"\\\1", part).replace("<", "&lt;")
                    for i, part in enumerate(parts))


def prose(text):
    """The Markdown of a comment or docstring: plain text with formulas (indented lines) and fields (`Errors    Shape`)."""
    result = []
    text = re.sub(r"^>>>.*\n(?:.+\n?)*", lambda shown: textwrap.indent(shown[0], "    "), text, flags=re.MULTILINE)  # as code
    for paragraph in re.sub(r"\n(?=[A-Za-z]\w*  +\S)", "\n\n", text).split("\n\n"):
        lines = paragraph.strip("\n").split("\n")
        field = re.match(r"([A-Za-z]\w*)  +(\S.*)", lines[0])
        if field:
            result.append(f"**{field[1]}** {escaped(' '.join([field[2], *(line.strip() for line in lines[1:])]))}")
            continue
        for indented, group in itertools.groupby(lines, lambda line: line.startswith("  ")):
            group = list(group)
            result.append(textwrap.indent(textwrap.dedent("\n".join(group)), "    ") if indented else escaped("\n".join(group)))
    return "\n\n".join(result)


class Prose(griffe.Extension):
    """Docstrings as Markdown."""

    def on_instance(self, *, obj, **_):
        if obj.docstring and not obj.is_alias:
            obj.docstring.value = prose(obj.docstring.value)


# C++: the headers are formatted alike, by clang-format.

def declared(code):
    """The name that a declaration of the outermost level declares, for its heading."""
    line = " ".join(part.strip() for part in code if not part.startswith(("template", "  ", "//")))
    found = (re.match(r"(?:struct|class|enum class|enum|concept|using) (?:\[\[\w+\]\] )?(\w+)", line)
             or re.search(r"([\w~]+|operator\S+)\(", line.replace("[[nodiscard]] ", "")) or re.search(r"(\w+)(?: =|\{|;)", line))
    return found[1] if found else ""


def header_page(path):
    """The page of a header: what its first comment says, then every declaration with its comment."""
    include = path.relative_to(ROOT / "include").as_posix()
    page = [f"# {include}", f"```cpp\n#include <{include}>\n```"]
    comment, code, namespace = [], [], False
    named = [""]

    def end():
        name = declared(code) if code else ""
        if name and not code[0].startswith(("namespace", "}", "using namespace", "#")):
            if name != named[-1]:  # not an overload or a specialization
                page.append(f"## {name}")
                named.append(name)
            page.extend([prose("\n".join(comment)), "```cpp\n{}\n```".format("\n".join(code))])
        comment.clear()
        code.clear()

    hidden = False  # within namespace detail
    for line in path.read_text().split("\n"):
        if line.startswith(("#include", "#pragma")):
            continue
        if line == "namespace detail {":
            hidden = True
        elif hidden:
            hidden = line != "}  // namespace detail"
        elif line.startswith("///") and not code:
            comment.append(line[3:].removeprefix(" "))
        elif line.startswith("//") and not code:  # a comment of the group that follows
            comment.append(line[2:].removeprefix(" "))
        elif re.match(r"namespace normscope\S* \{", line):
            page.append(prose("\n".join(comment)))
            comment.clear()
            page.append(f"In namespace `{line.split()[1]}`.")
            namespace = True
        elif not line and not code and comment:  # such a comment stands alone
            page.append(prose("\n".join(comment)))
            comment.clear()
        elif line and namespace and not line.startswith("}  // namespace"):
            code.append(line)
            outermost = not line.startswith(" ") or not any(part.endswith("{") for part in code)
            if outermost and re.search(r"(;|\})( *//.*)?$", line):
                end()
        elif code:
            code.append(line)
    return "\n\n".join(page) + "\n"


def cpp_pages():
    origin, here = ROOT / "docs/install.md", "reference/cpp/index.md"
    pages = {}
    begin = linked(origin.read_text().partition("## From C++\n")[2].partition("\n## ")[0], origin, here, pages)
    index = ["# C++ reference", "## To begin", begin, "Every public header has a page."]
    for module in sorted((ROOT / "include/normscope").iterdir()):
        headers = sorted(module.rglob("*.hpp"))
        index += [f"## {module.name}", "| header | about |\n|---|---|"]
        for path in headers:
            name = path.relative_to(ROOT / "include/normscope").with_suffix(".md").as_posix()
            pages[f"reference/cpp/{name}"] = header_page(path)
            comments = re.findall(r"^((?:/// ?.*\n)+)(namespace )?", path.read_text(), re.MULTILINE)
            about = next((text for text, whole in comments if whole), comments[0][0] if comments else "")
            first = re.split(r"(?<=[.:]) ", re.sub(r"\s*///\s?", " ", about).strip())[0].rstrip(":")
            index[-1] += f"\n| [{path.name}]({name}) | {escaped(first)} |"
    pages[here] = "\n\n".join(index) + "\n"
    return pages


def command_pages():
    command = os.environ.get("NORMSCOPE", str(ROOT / "build/bin/normscope"))
    text = subprocess.run([command, "manual", "markdown"], check=True, capture_output=True, text=True).stdout
    index, *pages = re.split(r"^(?=# normscope )", text, flags=re.MULTILINE)
    named = {re.match(r"# normscope (.*)", page)[1].replace(" ", "-"): page for page in pages}
    return {"reference/commands/index.md": index, **{f"reference/commands/{name}.md": page for name, page in named.items()}}


def python_pages():
    pages = {f"reference/python/{name}.md": f"# {name}\n\n::: {name}\n" for name in PYTHON}
    # Hundreds of classes that only have fields: their code says all.
    source = (ROOT / "build-docs/python/normscope/results.py").read_text()
    shown = ["# normscope.results", "What the functions return, and what `read` makes of a document that a command wrote "
             "with `--json` ([schemas](../../schemas/README.md))."]
    for made in ast.parse(source).body:
        if isinstance(made, (ast.ClassDef, ast.FunctionDef)) and not made.name.startswith("_"):
            code = ast.get_source_segment(source, made).partition("\n\n    _required")[0]
            shown += [f"## {made.name}", f"```python\n{code}\n```"]
    pages["reference/python/normscope.results.md"] = "\n\n".join(shown) + "\n"
    return pages


def source_page(path):
    """A file, or what a folder holds."""
    name = path.relative_to(ROOT).as_posix()
    head = f"---\nsearch:\n  exclude: true\n---\n# {name}\n\n"
    if path.is_dir():
        return head + "".join(f"- `{below.name}`\n" for below in sorted(path.iterdir()))
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text())["cells"]
        return "\n\n".join(f"````python\n{text}\n````" if cell["cell_type"] == "code" else text
                           for cell in cells for text in ["".join(cell["source"])])
    language = {".hpp": "cpp", ".cpp": "cpp", ".py": "python", ".json": "json"}.get(path.suffix, "text")
    return f"{head}````{language}\n{path.read_text()}\n````\n"


def place(path):
    """The site's name of a file of the repository."""
    if (path / "README.md").exists():
        path = path / "README.md"
    name = path.relative_to(ROOT).as_posix()
    if name.startswith("docs/") and path.is_file():
        return name[5:]
    if name.startswith("include/normscope/") and path.suffix:
        return "reference/cpp/" + name[18:].replace(".hpp", ".md")
    return DOCUMENTS.get(name, f"source/{name}.md")


def linked(markdown, origin, here, pages):
    """The text of the repository's file `origin` for the site's page `here`: its links lead to pages of the site."""
    def link(match):
        path = (origin.parent / match[2]).resolve()
        if not path.exists() or not path.is_relative_to(ROOT):
            return match[0]  # made pages; MkDocs reports those that are not
        target = place(path)
        if target.startswith("source/") and target not in pages:
            pages[target] = ""
            pages[target] = linked(source_page(path), path, target, pages)
        return match[1] + posixpath.relpath(target, posixpath.dirname(here) or ".") + match[3]

    def told(text):
        # Elsewhere a list may follow a line of text, and a bar in the code of a table needs a backslash.
        text = re.sub(r"`[^`\n]*`", lambda code: code[0].replace("\\|", "|"), text)
        return LIST.sub(r"\1\n\n", LINK.sub(link, text))

    parts, at = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [told(markdown[at:fence.start()]), fence[0]]
        at = fence.end()
    return "".join(parts) + told(markdown[at:])


def on_config(config):
    """Adds the pages to the navigation: an entry that ends in a slash stands for the pages of that folder."""
    pages = {**command_pages(), **python_pages(), **cpp_pages()}
    for name, here in DOCUMENTS.items():
        if (ROOT / name).exists():
            pages[here] = linked((ROOT / name).read_text(), ROOT / name, here, pages)
    # Its picture shows buttons, so that a reader presses it.
    home = re.sub(r"!\[The explorer\]\(.*?\)", lambda picture: f'<a href="explore/index.html">{picture[0]}</a>', pages["index.md"])
    pages["index.md"] = "---\nhide: [navigation]\n---\n" + home
    for path in (ROOT / "docs").rglob("*.md"):  # for the sources that they link to
        linked(path.read_text(), path, path.relative_to(ROOT / "docs").as_posix(), pages)
    config.extra["pages"] = pages

    def filled(entry):
        if isinstance(entry, list):
            return [filled(below) for below in entry]
        if isinstance(entry, dict):
            return {title: filled(below) for title, below in entry.items()}
        return below(entry) if entry.endswith("/") else entry

    def below(folder):
        names = {name.removeprefix(folder).removesuffix(".md") for name in pages if name.startswith(folder)}
        index = [folder + "index.md"] if "index" in names else []
        folders = [{name: below(f"{folder}{name}/")} for name in sorted({name.split("/")[0] for name in names if "/" in name})]
        single = sorted(name for name in names if "/" not in name and name != "index")
        return index + folders + [{name.replace("-", " "): f"{folder}{name}.md"} for name in single]

    config.nav = filled(config.nav)
    return config


def on_files(files, config):
    for name, text in config.extra["pages"].items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    path = ROOT / "docs" / page.file.src_uri
    if page.file.src_uri in config.extra["pages"] or not path.exists():
        return markdown
    return linked(markdown, path, page.file.src_uri, config.extra["pages"])
