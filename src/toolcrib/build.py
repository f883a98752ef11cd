"""Build tool folders: check all of them, and write a registry with the hashes of the files that were checked.

<root>/<tool>/…               tool folders of four files
<root>/_core/error-types.js   imported by handlers; supplied where it is missing
<root>/tool_registry.json     written by the build, loaded by agents when they start
"""

from toolcrib.features.folders.build import Built, Checked, build, check_folders, watch
from toolcrib.features.folders.registry import Registry, Unbuilt, load_registry, unbuilt_folders
from toolcrib.features.folders.starter import starter_files

__all__ = [
    "Built",
    "Checked",
    "Registry",
    "Unbuilt",
    "build",
    "check_folders",
    "load_registry",
    "starter_files",
    "unbuilt_folders",
    "watch",
]
