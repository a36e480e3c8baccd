"""The papers' methods: pure functions and estimators on arrays, one method a file, used live and offline."""
