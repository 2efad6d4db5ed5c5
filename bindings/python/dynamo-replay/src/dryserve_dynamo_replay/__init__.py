"""Supplies ``dynamo.replay`` and its command line where nobody else does.

Runs whenever Python starts, so it imports nothing. Its finder stands last:
it is asked only for modules that are nowhere else, so that it cannot shadow an
ai-dynamo that has them.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_FILES = {"dynamo": None, "dynamo.replay": "__init__.py", "dynamo.replay.__main__": "__main__.py"}


class Finder:
    """Finds the modules that are missing."""

    @staticmethod
    def find_spec(fullname: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None) -> "ModuleSpec | None":
        """The module's specification; None: it is not ours."""
        if fullname not in _FILES:
            return None
        from importlib.machinery import ModuleSpec
        from importlib.util import spec_from_file_location

        name = _FILES[fullname]
        if name is None:  # a package without a file, as ai-dynamo's is
            return ModuleSpec(fullname, None, is_package=True)
        here = __file__[: -len("__init__.py")] + "replay"
        inner = [here] if name == "__init__.py" else None
        return spec_from_file_location(fullname, f"{here}/{name}", submodule_search_locations=inner)


if not any(getattr(f, "__module__", "") == __name__ for f in sys.meta_path):
    sys.meta_path.append(Finder)
