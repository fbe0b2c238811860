"""CuratorAveraging: the document's own protocol with an untrusted curator (Pathak, Rane and Raj)."""
