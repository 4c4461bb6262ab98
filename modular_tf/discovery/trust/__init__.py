"""Trust: whether a plugin may be opened, decided on its bytes and on who could have changed them.

A `TrustJudge` follows each path as the kernel would and checks the owner, the mode and the access
control list of the file, of every directory above it and of every link on the way; then at the
hash in the RECORD of the distribution that brought it; then, where plugins are frozen, at the lock
file. It answers with a `TrustVerdict`, whose `checked` files are compared with what is mapped.
"""
