"""Messages between organisations: letters, the message server, and the connections to it.

Parties connect outwards only, to one NATS server, over TLS. The server lets each of them publish and subscribe to its
own subjects only, which keeps strangers out. What is *believed* rests on the letters alone: each is signed by its
sender, or tagged in a session that signatures began, and names its recipient, study, run and round. So whoever runs the
server can delay or drop letters, not forge them.
"""
