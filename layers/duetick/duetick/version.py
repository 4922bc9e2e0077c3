"""The version of Duetick, in its one home. `layers/duetick/CHANGELOG.md` says what it brings."""

VERSION = "0.1.0"
