"""The ground floor: database, time, ids, errors, configuration. Knows nothing of agents."""
