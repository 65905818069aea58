"""Where rows come from: files, and seeded generators for demonstrations and tests."""
