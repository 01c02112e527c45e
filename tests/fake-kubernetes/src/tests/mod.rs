//! The server through plain HTTP and through the client of the project.
