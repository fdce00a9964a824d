"""For the tests of this repository: pytest's own test bench, and the plugin also where nothing is installed."""

from importlib.metadata import entry_points

pytest_plugins = ["pytester", "tests.surroundings"]

if not entry_points(group="pytest11", name="understudy"):
    pytest_plugins.append("understudy.pytest_plugin")
