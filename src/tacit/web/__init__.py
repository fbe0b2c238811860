"""Two web sites, the coordinator's and each party's own: one foundation, and a folder of pages for each.

Pages are made on the server and read without JavaScript. All handlers are `async` and use the site's databases on the
event loop's own thread; whatever computes for long runs in a thread, without a database.
"""
