"""The version of Duetick, in its one home. `layers/duetick/CHANGELOG.md` lists its changes."""

VERSION = "0.1.0"
