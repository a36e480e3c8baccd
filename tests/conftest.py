"""What every test has: an environment without the developer's own models."""

import pytest


@pytest.fixture(autouse=True)
def own_models_only(tmp_path_factory, monkeypatch):
    """The developer's models must not judge in tests."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / "data"))
