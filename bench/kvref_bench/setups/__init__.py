"""What each configuration that a user can choose costs, in pairs with the demo table of the same store.

Reading path: `setups.toml` (the set-ups, as data), `entries` (what an entry means), `measure` (servers and pairs),
`document` (JSON, and the table of its page).
"""
