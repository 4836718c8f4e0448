"""The configuration file of `stowplan run`: a KubeSchedulerConfiguration that is read again when it changes.

So are the files from which its plugins read arguments: /etc/kubernetes/sppriority.yaml, for example.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stowplan.apps import profile_loader
from stowplan.apps.config_file import WatchedFile, digest
from stowplan.apps.run.configuration import LoadedConfiguration
from stowplan.framework.feature_gates import DEFAULT_GATES, FeatureGates
from stowplan.framework.registry import Registry


def config_file(
    file: Path, plugin_path: Sequence[Path] = (), gates: FeatureGates = DEFAULT_GATES
) -> WatchedFile[LoadedConfiguration]:
    """`plugin_path`: the folders that code may come from."""
    return WatchedFile(file, profile_loader.registry(file.parent, tuple(plugin_path), gates), _read)


def _read(plugins: Registry, file: Path, text: str) -> LoadedConfiguration:
    configuration, profiles = profile_loader.read_with(plugins, file, text)
    return LoadedConfiguration(configuration, profiles, digest(text, *plugins.argument_files.values()))
