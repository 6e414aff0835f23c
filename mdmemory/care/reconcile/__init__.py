"""Two folders kept together, both ways: a person's, and one that agents on other hosts keep. Floor 4.

`state` what both had last, `side` one folder as last looked at, `fates` what becomes of each file (pure), `changing` from fates to
changes, `index` and `journals` (what is no memory file), `running` the whole of it, `watching` until it is ended; see docs/sync.md.
"""

from mdmemory.care.reconcile.fates import Step
from mdmemory.care.reconcile.pair import Pair, Synced
from mdmemory.care.reconcile.running import reconcile
from mdmemory.care.reconcile.watching import keep_together

__all__ = ["Pair", "Step", "Synced", "keep_together", "reconcile"]
