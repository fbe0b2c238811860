"""Commands that need no network: they run in this process, on files that lie here."""
