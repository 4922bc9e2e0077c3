"""The machine that the lab runs on, in Lambda's words."""

import platform

ARCHITECTURE = "arm64" if platform.machine() in {"aarch64", "arm64"} else "x86_64"
