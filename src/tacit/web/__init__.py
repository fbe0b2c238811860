"""Two web sites, the coordinator's and each party's own: one foundation, and a folder of pages for each.

Pages are made on the server and read without JavaScript. All handlers are `async` and use the site's databases on the
event loop's own thread; whatever computes for long runs in a thread, without a database.
"""

from __future__ import annotations

from importlib.util import find_spec

from tacit.errors import SettingError

_PACKAGES = ("fastapi", "uvicorn", "multipart", "sse_starlette", "argon2", "joserfc", "httpx")

if _missing := next((name for name in _PACKAGES if find_spec(name) is None), None):
    raise SettingError(f"the web sites need the package {_missing}; install it with: pip install 'tacit[web]'")
