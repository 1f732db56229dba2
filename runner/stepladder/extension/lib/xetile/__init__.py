"""Code of the ops on XeTile programs: tiles, their layouts over subgroups, and XeGPU."""
