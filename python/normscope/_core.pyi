"""The extension module. Its functions take every argument by position; the modules around it have the signatures."""

from typing import Any

__version__: str

def __getattr__(name: str) -> Any: ...
