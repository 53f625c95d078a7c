"""The generated package `tflite`, of which only the modules that are used are imported.

The package imports its 180 modules at once, which takes longer than reading most networks. Here it is a
package whose classes are imported at their first use; any other attribute of it, here or elsewhere in the
process, imports the whole.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

NAME = "tflite"


class _Package(ModuleType):
    """The package; its attributes are classes of the same names as the modules that they stand in."""

    def __setattr__(self, name: str, value: object) -> None:
        own = isinstance(value, ModuleType) and value.__name__ == f"{NAME}.{name}"
        if not (own and hasattr(value, name)):  # the package shows the class, not its module
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            value = getattr(import_module(f"{NAME}.{name}"), name)
        except (ModuleNotFoundError, AttributeError):
            spec = self.__spec__
            if spec is not None and spec.loader is not None and "__version__" not in vars(self):
                spec.loader.exec_module(self)  # the package's own __init__, once
            if name not in self.__dict__:
                raise AttributeError(f"module '{NAME}' has no attribute '{name}'") from None
            return self.__dict__[name]
        setattr(self, name, value)
        return value


def _package() -> Any:
    spec = find_spec(NAME) if NAME not in sys.modules else None
    if spec is None or spec.submodule_search_locations is None:
        import tflite as imported  # by somebody else already, or not installed

        return imported
    package = _Package(NAME)
    package.__spec__, package.__file__ = spec, spec.origin
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules[NAME] = package
    return package


tflite = _package()


def functions(table: str) -> ModuleType:
    """The module with the functions that write a table: `BufferStart`, `BufferAddData`, ..., `BufferEnd`."""
    return import_module(f"{NAME}.{table}")
