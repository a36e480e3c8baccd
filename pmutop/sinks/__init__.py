"""Where Moments go besides the screen."""
