"""Results for people: the HTML page, the terminal, and the charts of both."""
