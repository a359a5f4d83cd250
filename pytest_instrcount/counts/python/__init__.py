"""Why a count grew: what it is made of by Python function, and which function's doing a change is."""
