"""The coordinator's site: accounts, sign-on, the catalogue of studies and the interface for scripts."""
