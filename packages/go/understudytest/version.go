package understudytest

// Version is that of the server that this package was made with.
const Version = "0.1.0"
