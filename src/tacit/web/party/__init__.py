"""The party's site: what a data owner reads, decides and finds out, on the party's own machine."""
