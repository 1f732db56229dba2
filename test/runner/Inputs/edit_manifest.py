"""Sets a field of a bundle's manifest: edit_manifest.py BUNDLE FIELD VALUE, the value as JSON."""

import json
import sys
from pathlib import Path

manifest = Path(sys.argv[1], "manifest.json")
manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {sys.argv[2]: json.loads(sys.argv[3])}))
