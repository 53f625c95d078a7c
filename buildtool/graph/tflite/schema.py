"""The package `tflite`, which is generated from the schema, with only the modules that are used.

Imported normally, the package imports all its 180 modules at once, which takes longer than reading most
networks. Here each class is imported at its first use. Any other attribute of the package, even one that
other code uses, causes an import of the whole package.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

NAME = "tflite"


class _Package(ModuleType):
    """The package `tflite`. Its attributes are classes. Each class is in a module with the same name."""

    def __setattr__(self, name: str, value: object) -> None:
        own = isinstance(value, ModuleType) and value.__name__ == f"{NAME}.{name}"
        if not (own and hasattr(value, name)):  # the attribute is the class, not its module
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


def _lazy_package() -> Any:
    spec = find_spec(NAME) if NAME not in sys.modules else None
    if spec is None or spec.submodule_search_locations is None:
        import tflite as imported  # other code has imported it, or it is not installed

        return imported
    package = _Package(NAME)
    package.__spec__, package.__file__ = spec, spec.origin
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules[NAME] = package
    return package


tflite = _lazy_package()


def functions(table: str) -> ModuleType:
    """Returns the module with the functions that write a table, such as `BufferStart` and `BufferAddData`."""
    return import_module(f"{NAME}.{table}")
