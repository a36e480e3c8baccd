"""The made-up Moments live one folder up; async tests run through `play`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
