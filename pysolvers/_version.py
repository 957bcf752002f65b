"""The version of the package, which stands in pyproject.toml alone."""

from importlib.metadata import PackageNotFoundError, version

UNKNOWN_VERSION = "0+unknown"  # of a source tree that is not installed

try:
    __version__ = version("pysolvers")
except PackageNotFoundError:
    __version__ = UNKNOWN_VERSION
