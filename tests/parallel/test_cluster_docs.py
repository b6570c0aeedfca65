"""The page about clusters and its examples: Ray's own loaders accept the files, and every command exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from keisei.cli.main import app
from keisei.parallel.backends.cluster.connection import import_ray
from keisei.parallel.backends.cluster.handle import LOST_SECONDS
from keisei.parallel.config import ParallelConfig

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cluster.md").read_text()


def example(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / "examples" / name).read_text())
    return content


def test_the_cluster_launcher_accepts_its_file() -> None:
    import_ray()
    from ray.autoscaler._private.util import prepare_config, validate_config

    config = prepare_config(example("cluster.yaml"))
    validate_config(config)
    assert config["available_node_types"]["player"]["max_workers"] == 2
    validate_broken = {**config, "max_wrkers": 2}
    with pytest.raises(Exception, match="max_wrkers"):
        validate_config(validate_broken)


def test_kuberay_accepts_its_file() -> None:
    import_ray()
    from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr
    from ray.autoscaler._private.util import validate_config

    manifest = example("kuberay.yaml")
    manifest["metadata"]["namespace"] = "default"
    config = _derive_autoscaling_config_from_ray_cr(manifest)
    validate_config(config)
    types = config["available_node_types"]
    assert types["headgroup"]["resources"]["CPU"] == 0
    assert types["players"]["resources"]["CPU"] == 16
    assert types["players"]["max_workers"] == 8


@pytest.mark.parametrize("name", ["cluster.yaml", "kuberay.yaml"])
def test_examples_are_safe_and_of_the_tested_version(name: str) -> None:
    text = (ROOT / "examples" / name).read_text()
    assert "token" in text
    assert "RAY_USAGE_STATS_ENABLED" in text
    assert re.search(r"include-dashboard(=|: \")false", text)
    assert import_ray().__version__ in text


def test_every_command_of_keisei_exists() -> None:
    commands = set(re.findall(r"`?keisei (\w+)", PAGE)) - {"bench"}
    assert commands == {"train", "doctor", "simulate", "verify"}
    for command in commands:
        assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0


def test_every_setting_exists() -> None:
    named = set(re.findall(r"parallel\.(\w+)", PAGE))
    assert named <= ParallelConfig.model_fields.keys()
    assert {"backend", "address", "worker_cpus", "worker_gpus", "compress_slabs"} <= named


def test_the_page_tells_the_truth_about_silence() -> None:
    assert f"silent for {LOST_SECONDS:g} seconds" in PAGE
