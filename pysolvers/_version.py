"""The version of the package, which stands in pyproject.toml alone."""

from importlib.metadata import PackageNotFoundError, version

__all__ = ["UNKNOWN_VERSION", "__version__"]

UNKNOWN_VERSION = "0+unknown"  # of a source tree that is not installed

try:
    __version__ = version("pysolvers")
except PackageNotFoundError:
    __version__ = UNKNOWN_VERSION
