"""README and addresses in the package's metadata, for scikit-build-core (pyproject.toml).

Links of python/README.md are relative, as a checkout needs them. With NORMSCOPE_URL, the address of the repository, they
are absolute; without it, the metadata has their text alone.
"""

import os
import posixpath
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
URL = os.environ.get("NORMSCOPE_URL", "").rstrip("/")


def address(path, version):
    return f"{URL}/blob/v{version}/{path}"


def dynamic_metadata(field, _settings, project):
    version = project["version"]
    if field == "urls":
        return {"Homepage": URL, "Documentation": address("docs/install.md", version), "Issues": f"{URL}/issues",
                "Changelog": address("CHANGELOG.md", version)} if URL else {}

    def link(match):
        text, target = match.groups()
        if re.match("https?:", target):
            return match[0]
        return f"[{text}]({address(posixpath.normpath('python/' + target), version)})" if URL else text

    text = re.sub(r"\[([^]\[]+)\]\(([^)\s]+)\)", link, (FOLDER / "README.md").read_text(encoding="utf-8"))
    return {"content-type": "text/markdown", "text": text}
