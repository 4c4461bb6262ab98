"""The service of an application: from what discovery finds to what is registered and served."""
