"""Who belongs to a federation: identities, the roster, invitations and each member's folder."""
