"""The version of the gateway, which the package's metadata takes from here."""

VERSION = "0.1.0"
