"""What comes back from Google: answers to mails and invitations, and what starts records by itself.

One reader for each account, and for each source. Its cursor lies in the ledger under a lease, so no two processes move
one; it moves only when all that came before it is in the ledger. A reader that is killed in between brings the same
things again, under the same ids. Pushes of Google are hints that a look is due; the look is the guarantee.
"""

from quire.workspace.readers.readers import Readers as Readers

__all__ = ["Readers"]
