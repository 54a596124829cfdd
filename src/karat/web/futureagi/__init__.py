"""Future AGI's protocol below `/sdk`: their official clients work with only the address changed."""
