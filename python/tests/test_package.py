import importlib.metadata

import airlane


def test_version_is_the_package_version() -> None:
    assert airlane.__version__ == importlib.metadata.version("airlane")
